"""What stands behind `toolrun.testing`."""
