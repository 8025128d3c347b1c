"""The verb `watch`: what happens in a running graph, in the terminal."""
