"""The admission and conversion webhook of Sluice: an aiohttp application over TLS.

`routes` says which path reviews what, `handlers` which rules decide, `app` reads and answers,
`server` listens, `tls` and `directory` keep the certificate. The composition root
(``sluice.cli``) wires it: what jobs depend on is passed in as
``sluice.jobs.admission.context.Lookups``.
"""
