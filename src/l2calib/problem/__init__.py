"""What is calibrated: observations, prior, measure on the inputs, and the experiment that they make."""
