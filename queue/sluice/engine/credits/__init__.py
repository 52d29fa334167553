"""Fair-share credits: accounts in the quota tree, their ledger, and what balances decide."""
