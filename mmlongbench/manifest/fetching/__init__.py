"""`mmlongbench fetch`: downloads the sources of a manifest into a data folder, and checks what is there."""
