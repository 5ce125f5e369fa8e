"""How an array gets other chunks and shards within bounded memory."""
