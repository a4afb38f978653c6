"""``python -m exarch_sql``: the command line."""

from exarch_sql.cli import main

if __name__ == "__main__":
    main()
