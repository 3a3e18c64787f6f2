"""What others wrote, under Ferry and without: run.py of this folder runs it all."""
