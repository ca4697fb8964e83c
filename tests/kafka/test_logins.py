"""A Secret chooses the login, but never a class that Java loads."""

from __future__ import annotations

import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.kafka.jaas import DISALLOWED_MODULES, LOGIN_MODULES, LoginRefused, login_of

PLAIN, SCRAM, OAUTH = LOGIN_MODULES
LDAP = "com.sun.security.auth.module.LdapLoginModule"
ENTRY = 'required username="u" password="hunter2";'


@pytest.mark.parametrize("module", LOGIN_MODULES)
def test_kafkas_own_modules_may_log_in(module: str) -> None:
    assert login_of(f"{module} {ENTRY}").module == module


@pytest.mark.parametrize(
    "text",
    [
        f'{SCRAM} required\n  username=\'u\'\n\tpassword = "p;\\"x\\"; // no comment";\n',
        f"\n{SCRAM} REQUIRED username=u password=p-1.2_$;",
        f"{OAUTH} required;",
        f'{PLAIN} required username="ü" password="ﬀ /* */ #";\r\n',
        f'{PLAIN} required username=""password="";',
    ],
)
def test_an_entry_may_be_written_in_several_ways(text: str) -> None:
    assert login_of(text).module in LOGIN_MODULES


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        f"{LDAP} {ENTRY}",
        *(f"{module} {ENTRY}" for module in DISALLOWED_MODULES),
        f"software.amazon.msk.auth.iam.IAMLoginModule {ENTRY}",
        f"{PLAIN.lower()} {ENTRY}",
        f'"{PLAIN}" {ENTRY}',
        f"'{LDAP}' {ENTRY}",
        f"x{PLAIN} {ENTRY}",
        f"{PLAIN}x {ENTRY}",
        f"{PLAIN}.{LDAP} {ENTRY}",
        f"{PLAIN}\u00a0{ENTRY}",
        f"{PLAIN}{ENTRY}",
        f"/* {PLAIN} */ {LDAP} {ENTRY}",
        f"// {PLAIN}\n{LDAP} {ENTRY}",
        f"{PLAIN} /* */ {ENTRY}",
        f"{PLAIN} {ENTRY} // the end",
        f"{PLAIN} {ENTRY} {LDAP} {ENTRY}",
        f"{PLAIN} {ENTRY};",
        f'{PLAIN} required password="hunter2\n; {LDAP} required x="y";',
        f'{PLAIN} required password="hunter2\\\n; {LDAP} required x="y";',
        f'{PLAIN} required password="hunter2',
        f'{PLAIN} required password="hunter2"',
        f"{PLAIN} required password;",
        f"{PLAIN} required password=;",
        f"{PLAIN} required password=/hunter2;",
        f"{PLAIN} password=hunter2;",
        f"{PLAIN} requiredd password=hunter2;",
        "com.sun.security.auth.module.Ldap\\u004coginModule required;",
        f"{PLAIN} required a\u0000=b;",
        f'{OAUTH} required ssl.engine.factory.class="evil.Class";',
    ],
)
def test_everything_else_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(LoginRefused) as caught:
        login_of(text)
    assert "hunter2" not in str(caught.value)
    assert "Ldap" not in str(caught.value)


words = st.text(string.ascii_letters + "_$", min_size=1, max_size=1).flatmap(
    lambda first: st.text(string.ascii_letters + string.digits + "._$-", max_size=12).map(lambda rest: first + rest)
)
names = words.filter(lambda name: not name.lower().endswith(("class", "classes")))
blanks = st.text(" \t\r\n", min_size=1, max_size=3)
contents = st.text(
    st.characters(min_codepoint=0x20, exclude_characters="\"'\\", exclude_categories=["Cs"]), max_size=20
)
quoted = st.builds(lambda quote, text: f"{quote}{text}{quote}", st.sampled_from("\"'"), contents)
options = st.builds(lambda name, value: f"{name}={value}", names, words | quoted)


@st.composite
def entries(draw: st.DrawFn) -> str:
    parts = [draw(st.sampled_from(LOGIN_MODULES)), draw(st.sampled_from(["required", "OPTIONAL", "Requisite"]))]
    parts += draw(st.lists(options, max_size=4))
    text = parts[0] + "".join(draw(blanks) + part for part in parts[1:])
    return f"{draw(st.just('') | blanks)}{text}{draw(st.just('') | blanks)};{draw(st.just('') | blanks)}"


@given(entries())
def test_every_plain_entry_is_read(text: str) -> None:
    assert login_of(text).module in LOGIN_MODULES


@given(st.text() | st.builds(lambda a, b, c: f"{a}{b}{c}", st.text(), entries(), st.text()))
def test_any_text_is_an_entry_of_kafkas_own_or_refused(text: str) -> None:
    with suppress(LoginRefused):
        assert login_of(text).module in LOGIN_MODULES


@given(entries(), entries(), st.text("; \n\"'\\/*#=", max_size=4))
def test_two_entries_are_never_one(first: str, second: str, between: str) -> None:
    with pytest.raises(LoginRefused):
        login_of(first + between + second)
