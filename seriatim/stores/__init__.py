"""Where rows are kept beyond the life of a process."""
