"""Texts become places: paths stay paths, addresses keep their slashes and show no secrets."""

from pathlib import Path

import pytest

from manifold_observer.pipeline.stores.address import Address, is_address, lies_in, place
from manifold_observer.pipeline.stores.credentials import s3_settings
from manifold_observer.pipeline.stores.refusals import StoreError, refusal


@pytest.mark.parametrize("text", ["a.npy", "/a/b.npy", "./x", "C:\\a.npy", "C:/a.npy", "a:b", "s3.npy", "~/x"])
def test_place__paths_stay_paths(text):
    assert place(text) == Path(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://b/k/a.zarr", "s3://b/k/a.zarr"),
        ("S3://b/k/a.zarr/", "s3://b/k/a.zarr"),
        (Path("s3://b/k/a.zarr"), "s3://b/k/a.zarr"),
        ("gs://b/a b%20c?d#e", "gs://b/a b%20c?d#e"),
        ("https://h:8080/a.csv?sig=1", "https://h:8080/a.csv"),
        ("https://me:pw@h/a.csv", "https://h/a.csv"),
    ],
)
def test_place__addresses_keep_their_slashes(text, shown):
    found = place(text)
    assert isinstance(found, Address)
    assert str(found) == shown
    assert "pw" not in repr(found)
    assert "sig" not in repr(found)


def test_place__a_file_url_is_a_path():
    assert place("file:///a/b%20c.npy") == Path("/a/b c.npy")


@pytest.mark.parametrize("text", ["s3://", "s3:///key", "s3://b/a//c", "s3://b/../c", "az://b/c", "s3://u:p@b/c"])
def test_place__what_cannot_be_meant_is_refused_without_its_secrets(text):
    with pytest.raises(ValueError, match=r"address: .* must ") as told:
        place(text)
    assert "u:p" not in str(told.value)


def test_place__a_folder_that_is_called_like_an_address_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "az:" / "b").mkdir(parents=True)
    assert place("az://b") == Path("az://b")
    assert not is_address("az://b")


def test_lies_in__goes_by_whole_names():
    assert lies_in(place("s3://b/a/c"), place("s3://b/a"))
    assert not lies_in(place("s3://b/ac"), place("s3://b/a"))
    assert not lies_in(place("gs://b/a"), place("s3://b/a"))


FILES = {
    "credentials": "[default]\naws_access_key_id = one\naws_secret_access_key = two\n"
    "[lab]\naws_access_key_id = three\n",
    "config": "[default]\nregion = eu-west-1\n[profile lab]\nregion = eu-north-1\nendpoint_url = https://s3.lab.example\n",
}


@pytest.fixture
def profiles(monkeypatch, tmp_path):
    """AWS's two files, and nothing in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_s3_settings__come_from_the_profile_where_the_environment_has_none(profiles, monkeypatch):
    assert s3_settings() == {"access_key_id": "one", "secret_access_key": "two", "region": "eu-west-1"}
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert s3_settings() == {"access_key_id": "three", "region": "eu-north-1", "endpoint": "https://s3.lab.example"}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "four")
    assert "access_key_id" not in s3_settings()
    monkeypatch.setenv("AWS_PROFILE", "none")
    with pytest.raises(ValueError, match=r"AWS_PROFILE must name a profile in .*; got 'none'"):
        s3_settings()


def test_s3_settings__nobody_asks_without_credentials(profiles, monkeypatch):
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    assert s3_settings() == {"skip_signature": "true"}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("status code: 404: <Code>NoSuchBucket</Code>", "the bucket s3://b does not exist. Check its name"),
        ("Received redirect without LOCATION, this normally", "is in another region than was asked. Set AWS_REGION"),
        (
            "status code: 400: <Code>AuthorizationHeaderMalformed</Code> expecting 'eu-west-1'",
            r"it says eu-west-1\)\. Set AWS_REGION",
        ),
        (
            "status code: 403 Forbidden: <Code>InvalidAccessKeyId</Code>",
            r"credentials are not valid \(InvalidAccessKeyId\)",
        ),
        (
            "status code: 403 Forbidden: <Code>AccessDenied</Code>",
            "may not be read with these credentials, or without any",
        ),
        ("status code: 503: <Code>SlowDown</Code>", "the server answered 503 again and again"),
        ("HTTP error: error sending request", "no answer in time. Check AWS_ENDPOINT_URL"),
        ("something new happened", "something new happened. Check the address and the settings of the store"),
    ],
)
def test_refusal__says_what_to_do(said, sentence):
    error = refusal(place("s3://b/k"), "read", RuntimeError(f"Generic S3 error: {said}\n\nDebug source: secret"))
    with pytest.raises(StoreError, match=sentence) as told:
        raise error
    assert "secret" not in str(told.value)
