"""Fine-tunings as people write them, under Ferry and without: table.py runs them."""
