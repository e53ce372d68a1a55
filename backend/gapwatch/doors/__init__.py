"""What requests pass: bounds on a body, the lane of a project, and answers that let go of what they hold."""
