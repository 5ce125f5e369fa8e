"""How an array gets other shards while it stays readable."""
