"""Maximum projection designs: space-filling Latin hypercubes (paper, Section 4.2)."""
