"""What happens to job objects at the API server's door: defaults and validation, by job kind.

`registry` names the kinds; `defaulting`, `common` and `topology` hold what they share; a kind's own
rules are in its module. Pure; what must be looked up is passed in (`context`).
Source: docs/spec/api.md 2.3 and 2.4.
"""
