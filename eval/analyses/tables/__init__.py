"""The analyses themselves, one table or family of tables in each module."""
