"""ovlpt beside the stock plugin over networks of the zoo: what runs in int8, how fast, and how exactly."""
