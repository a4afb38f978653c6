"""Hand-made Claude Code sessions."""
