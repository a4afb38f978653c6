"""What must not be printed as it is: one list of characters for everything that shows what was recorded."""

# The inside of a character class of `re`: what a terminal acts on or does not show. Controls, surrogates, line and paragraph
# separators, and the formats but for the two joiners that scripts and emoji need, and the number signs that are seen.
UNSEEN = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
