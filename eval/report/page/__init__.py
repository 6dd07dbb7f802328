"""The HTML page: what it says first, its tables, its pairs, put into the template."""
