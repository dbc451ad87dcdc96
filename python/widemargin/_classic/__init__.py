"""The classical machines beside the support vector machines."""
