"""Dropout: the share that is dropped, and a mean that stays."""

import pytest

torch = pytest.importorskip("torch")

from regard.model._dropout import dropped  # noqa: E402


@pytest.mark.parametrize("share", [0.25, 0.1])
@pytest.mark.parametrize("shape", [(3, 5), (401, 503)])
def test_it_drops_its_share_and_keeps_the_mean(share: float, shape: tuple[int, int]) -> None:
    torch.manual_seed(1)
    ones = torch.ones(shape, dtype=torch.bfloat16)
    least = round(256 * share)
    found = dropped(ones, share, True)
    assert found.shape == shape
    assert set(found.unique().tolist()) <= {
        0.0,
        float(torch.tensor(256 / (256 - least)).bfloat16()),
    }
    if found.numel() > 1000:
        count, chance = found.numel(), least / 256
        # Within five standard deviations of what chance gives.
        assert abs((found == 0).sum() - count * chance) < 5 * (count * chance) ** 0.5


def test_not_in_training_and_not_without_a_share() -> None:
    x = torch.randn(7, 3)
    assert dropped(x, 0.5, False) is x
    assert dropped(x, 0.0, True) is x


def test_what_is_dropped_has_no_gradient() -> None:
    torch.manual_seed(2)
    x = torch.randn(11, 13, requires_grad=True)
    found = dropped(x, 0.5, True)
    found.sum().backward()
    torch.testing.assert_close(x.grad, 2.0 * (found != 0))


def test_the_seed_decides() -> None:
    x = torch.ones(64)
    torch.manual_seed(3)
    first = dropped(x, 0.5, True)
    torch.manual_seed(3)
    assert dropped(x, 0.5, True).equal(first)
