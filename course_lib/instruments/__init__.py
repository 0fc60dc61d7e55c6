"""What lessons and experiments measure and show with: training, plots, kept results, models."""
