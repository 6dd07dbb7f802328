"""The leaderboard: a web page over results files, on this machine or as a Hugging Face Space."""
