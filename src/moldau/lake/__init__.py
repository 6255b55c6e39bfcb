"""Topics to lake tables and back: loads that commit data and offsets together, maintenance, changelogs, pipelines.

pyspark, pyarrow, deltalake and pyiceberg are imported where they are used; `pip install 'moldau[spark]'` brings
them.
"""
