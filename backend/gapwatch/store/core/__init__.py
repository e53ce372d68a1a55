"""The ground of the store: connections, pools, migrations, and what every room needs."""
