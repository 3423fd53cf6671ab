"""The one exception with which a build fails."""


class BuildError(RuntimeError):
    """The kernel could not be built or loaded; `str` is the message for the person who has to put it right.

    Attributes:
        problem: What is missing or wrong, one line.
        remedy: What brings it, one line.
        detail: The tool's own words, where they say more; may be several lines, may be empty.
    """

    def __init__(self, problem: str, remedy: str, detail: str = "") -> None:
        self.problem = problem
        self.remedy = remedy
        self.detail = detail.strip()
        super().__init__(f"{problem}: {remedy}" + (f"\n{self.detail}" if self.detail else ""))

    def __reduce__(self) -> tuple[type["BuildError"], tuple[str, str, str]]:
        # Exceptions travel between processes by their args, which here are the finished message.
        return type(self), (self.problem, self.remedy, self.detail)
