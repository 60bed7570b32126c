"""Safety when the class mix is unknown: the least favourable prior and its rule."""
