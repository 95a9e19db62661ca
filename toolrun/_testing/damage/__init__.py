"""Valid arguments, broken in the ways in which models break them."""
