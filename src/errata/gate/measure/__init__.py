"""Plan the measurements that the rules are judged by. Pure."""
