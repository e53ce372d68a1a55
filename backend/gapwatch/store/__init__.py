"""Tables and all the SQL. Stages meet here and nowhere else."""
