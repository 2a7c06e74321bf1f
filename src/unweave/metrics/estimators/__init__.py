"""What several metrics compute first: checked arrays, bins, entropies and mutual information."""
