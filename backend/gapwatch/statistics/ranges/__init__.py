"""Whether a simulator was randomised around what reality is."""
