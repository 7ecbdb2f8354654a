"""Age of prices in words."""


def format_age(days: int) -> str:
    """Age in words.

    >>> format_age(0), format_age(1), format_age(40), format_age(400), format_age(2878)
    ('today', '1 day', '40 days', '13 months', '7 years and 10 months')
    """
    if days <= 0:
        return "today"
    if days < 61:
        return f"{days} day{'s' * (days > 1)}"
    months = int(days / 30.44)
    if months < 24:
        return f"{months} months"
    years, months = divmod(months, 12)
    return f"{years} years" + (f" and {months} month{'s' * (months > 1)}" if months else "")
