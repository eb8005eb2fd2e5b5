"""Which test checks which row of a table in the docs."""


class Rows:
    """Marks tests by the first cell of their row; `cells` are those that have a test.

        row = Rows()

        @row("The quota is full")
        def test_...
    """

    def __init__(self):
        self.cells = []

    def __call__(self, cell):
        def mark(test):
            assert cell not in self.cells, f"two tests for the row: {cell}"
            self.cells.append(cell)
            return test

        return mark
