"""Results for the leaderboard: made, checked, verified, published."""
