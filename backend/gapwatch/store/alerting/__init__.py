"""Rules, alerts, incidents, deliveries and the queue of the watch."""
