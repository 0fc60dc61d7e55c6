"""What is measured: figures over seeds, times beside other packages, what answers are told."""
