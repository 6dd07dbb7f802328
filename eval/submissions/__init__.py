"""Results for the leaderboard: untrusted files read safely, checked, verified, published."""
