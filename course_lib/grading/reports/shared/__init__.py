"""What reports share: names of files, strangers' strings as text, statistics, tables, pages."""
