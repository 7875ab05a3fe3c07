"""Step 0: exact rewrites into forms that low precision has rules for; none of them with ``native_only``."""
