"""What larger commands do, apart from their options: each is imported by its command when called.

So `--help` is quick, and these files name at their top what they stand on.
"""
