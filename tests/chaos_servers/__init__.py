"""Mock providers that others wrote, over loopback, with the providers' own SDKs in front of a runner."""
