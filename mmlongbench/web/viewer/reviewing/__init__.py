"""What people review in the viewer: what is shown beside each other, and the file of what they decide."""
