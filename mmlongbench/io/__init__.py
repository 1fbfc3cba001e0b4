"""Files and processes: atomic writes, bounded reads, JSON lines, the hub, a process pool, progress bars."""
