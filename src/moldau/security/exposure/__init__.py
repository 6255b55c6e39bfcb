"""What a node's settings leave open to whom: findings from settings and a few facts about files."""
