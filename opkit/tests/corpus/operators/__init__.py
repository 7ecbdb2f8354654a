"""One module for each category of faults; a module's healthy operators are the right ones that look alike."""
