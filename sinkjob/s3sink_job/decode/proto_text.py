"""Reads .proto texts as file descriptors, as far as the bytes of records depend on them.

Services, extensions and options that change no bytes are passed over. Names are resolved by `proto_schema.py`.
"""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import Message
from google.protobuf.text_format import Merge, ParseError

from s3sink_job.decode.proto_tokens import END, Tokens

LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
SCALARS = {
    kind.removeprefix("TYPE_").lower(): number
    for kind, number in FieldDescriptorProto.Type.items()
    if kind not in {"TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM"}
}
SYNTAXES = ("proto2", "proto3")
EDITIONS = {name: number for name, number in Edition.items() if name.removeprefix("EDITION_").isdigit()}
ROOT = "the schema itself"
"""Registries keep no name of the file. This one is in no import: references may have any name of a file."""
MOST_LEVELS = 30
"""Messages within each other. Google's own limit is 32."""


def parse_file(name: str, text: str) -> FileDescriptorProto:
    """Raises `InvalidSchema`."""
    return _FileParser(name, text).parse()


class _FileParser:
    def __init__(self, name: str, text: str) -> None:
        self._tokens = Tokens(text, "" if name == ROOT else name)
        self._file = FileDescriptorProto(name=name, syntax="proto2")

    def parse(self) -> FileDescriptorProto:
        tokens, file = self._tokens, self._file
        self._syntax()
        while tokens.next.text != END:
            if tokens.took("package"):
                file.package = tokens.path()
                tokens.expect(";")
            elif tokens.took("import"):
                self._import()
            elif tokens.took("option"):
                self._option(file.options)
                tokens.expect(";")
            elif self._visible("message"):
                self._message(file.message_type.add(), 1)
            elif self._visible("enum"):
                self._enum(file.enum_type.add())
            elif tokens.took("extend"):
                self._extend()
            elif tokens.took("service"):
                tokens.skip_statement()
            elif not tokens.took(";"):
                tokens.fail(f"{tokens.next.text!r} is not expected")
        return file

    def _syntax(self) -> None:
        tokens, file = self._tokens, self._file
        if tokens.took("syntax", "="):
            file.syntax = tokens.string()
            if file.syntax not in SYNTAXES:
                tokens.fail(f"the syntax {file.syntax!r} is neither proto2 nor proto3")
            tokens.expect(";")
        elif tokens.took("edition", "="):
            name = f"EDITION_{tokens.string()}"
            if name not in EDITIONS:
                tokens.fail(f"{name} is not known to this release")
            file.syntax, file.edition = "editions", EDITIONS[name]
            tokens.expect(";")

    def _visible(self, word: str) -> bool:
        """Takes the word that begins a definition, with `export` or `local` in front of it."""
        return self._tokens.took(word) or self._tokens.took("export", word) or self._tokens.took("local", word)

    def _import(self) -> None:
        tokens = self._tokens
        if tokens.took("option"):  # imports for the options of this file alone
            tokens.skip_statement()
            return
        public = tokens.took("public")
        weak = not public and tokens.took("weak")
        if public:
            self._file.public_dependency.append(len(self._file.dependency))
        if weak:
            self._file.weak_dependency.append(len(self._file.dependency))
        self._file.dependency.append(tokens.string())
        tokens.expect(";")

    def _message(self, message: DescriptorProto, level: int) -> None:
        message.name = self._tokens.name()
        self._body(message, level)

    def _body(self, message: DescriptorProto, level: int) -> None:
        """Message indexes count the messages that the text declares. Others, made for maps and groups, come last."""
        tokens = self._tokens
        if level > MOST_LEVELS:
            tokens.fail(f"more than {MOST_LEVELS} messages within each other")
        made: list[DescriptorProto] = []
        tokens.expect("{")
        while not tokens.took("}"):
            if self._declares("message"):
                self._message(message.nested_type.add(), level + 1)
            elif self._declares("enum"):
                self._enum(message.enum_type.add())
            elif tokens.behind(1).kind == "name" and tokens.took("oneof"):
                self._oneof(message, made, level)
            elif tokens.took("option"):
                self._option(message.options)
                tokens.expect(";")
            elif tokens.behind(1).text not in (".", "=") and tokens.took("extend"):
                self._extend()
            elif tokens.next.text in ("reserved", "extensions") and tokens.behind(2).text != "=":
                tokens.skip_statement()
            elif not tokens.took(";"):
                self._field(message, made, level)
        message.nested_type.extend(made)
        self._add_oneofs_of_optional_fields(message)

    def _declares(self, word: str) -> bool:
        """A field may have a type with the name `message`."""
        visible = self._tokens.next.text in ("export", "local")
        if self._tokens.behind(2 if visible else 1).kind != "name":
            return False
        return self._tokens.behind(3 if visible else 2).text == "{" and self._visible(word)

    def _oneof(self, message: DescriptorProto, made: list[DescriptorProto], level: int) -> None:
        tokens = self._tokens
        oneof, index = message.oneof_decl.add(), len(message.oneof_decl) - 1
        oneof.name = tokens.name()
        tokens.expect("{")
        while not tokens.took("}"):
            if tokens.took("option"):
                self._option(oneof.options)
                tokens.expect(";")
            elif not tokens.took(";"):
                self._field(message, made, level).oneof_index = index

    def _add_oneofs_of_optional_fields(self, message: DescriptorProto) -> None:
        """As the specification of proto3 asks, behind the other ones."""
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _field(self, message: DescriptorProto, made: list[DescriptorProto], level: int) -> FieldDescriptorProto:
        tokens = self._tokens
        field = message.field.add(label=FieldDescriptorProto.LABEL_OPTIONAL)
        if tokens.next.text in LABELS and tokens.behind(1).text != "=" and tokens.behind(2).text != "=":
            label = tokens.take().text
            field.label = LABELS[label]
            field.proto3_optional = label == "optional" and self._file.syntax == "proto3"
        if tokens.next.text == "map" and tokens.behind(1).text == "<":
            self._map(field, made)
        elif tokens.behind(1).kind == "name" and tokens.took("group"):
            self._group(field, made, level)
        else:
            self._type(field)
            self._name_and_number(field)
            tokens.expect(";")
        field.json_name = field.name  # fields that are alike in JSON may be refused, and no record has these names
        return field

    def _type(self, field: FieldDescriptorProto) -> None:
        name = self._tokens.path()
        if name in SCALARS:
            field.type = SCALARS[name]
        else:
            field.type_name = name  # of a message or of an enum: the descriptor pool finds out

    def _name_and_number(self, field: FieldDescriptorProto) -> None:
        tokens = self._tokens
        field.name = tokens.name()
        tokens.expect("=")
        number = tokens.whole_number()
        if not 0 < number < 2**29:
            tokens.fail(f"field {field.name} has the number {number}")
        field.number = number
        if tokens.took("["):
            self._option(field.options)
            while tokens.took(","):
                self._option(field.options)
            tokens.expect("]")

    def _map(self, field: FieldDescriptorProto, made: list[DescriptorProto]) -> None:
        tokens = self._tokens
        entry = DescriptorProto()
        entry.options.map_entry = True
        tokens.take()
        tokens.expect("<")
        for number, (name, end) in enumerate([("key", ","), ("value", ">")], 1):
            self._type(entry.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL))
            tokens.expect(end)
        self._name_and_number(field)
        tokens.expect(";")
        words = field.name.split("_")
        entry.name = "".join(word[:1].upper() + word[1:] for word in words) + "Entry"
        field.label, field.type = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = entry.name
        made.append(entry)

    def _group(self, field: FieldDescriptorProto, made: list[DescriptorProto], level: int) -> None:
        self._name_and_number(field)
        group = DescriptorProto(name=field.name)
        field.name, field.type_name = field.name.lower(), field.name
        field.type = FieldDescriptorProto.TYPE_GROUP
        made.append(group)
        self._body(group, level + 1)

    def _extend(self) -> None:
        """Extensions are no columns."""
        self._tokens.path()
        self._tokens.skip_pair()

    def _enum(self, enum: EnumDescriptorProto) -> None:
        tokens = self._tokens
        enum.name = tokens.name()
        tokens.expect("{")
        while not tokens.took("}"):
            if tokens.behind(1).text != "=" and tokens.took("option"):
                self._option(enum.options)
                tokens.expect(";")
            elif tokens.next.text == "reserved" and tokens.behind(1).text != "=":
                tokens.skip_statement()
            elif not tokens.took(";"):
                value = enum.value.add(name=tokens.name())
                tokens.expect("=")
                number = tokens.whole_number()
                if not -(2**31) <= number < 2**31:
                    tokens.fail(f"enum value {value.name} has the number {number}")
                value.number = number
                if tokens.next.text == "[":
                    tokens.skip_pair()
                tokens.expect(";")

    def _option(self, options: Message) -> None:
        """Keeps options that change how records are read: `packed`, `map_entry`, `features` and so on.

        Others are passed over: those in parentheses are somebody's own, also if they have a name of Google's.
        """
        tokens = self._tokens
        names = [self._option_name()]
        while tokens.took("."):
            names.append(self._option_name())
        tokens.expect("=")
        if tokens.next.text == "{":
            value = tokens.skip_pair()
        else:
            tokens.took("-")
            value = tokens.string() if tokens.next.kind == "string" else tokens.take().text
        match names:
            case [name, *_] if name not in options.DESCRIPTOR.fields_by_name:
                pass
            case ["packed" | "map_entry" | "allow_alias" | "message_set_wire_format" as name]:
                setattr(options, name, value == "true")
            case ["features", name] if not name.startswith("("):
                self._features(options, f"{name}: {value}")
            case ["features"]:
                self._features(options, value)

    def _option_name(self) -> str:
        if self._tokens.next.text == "(":
            return f"({self._tokens.skip_pair()})"
        return self._tokens.name()

    def _features(self, options: Message, text: str) -> None:
        features: FeatureSet = options.features  # type: ignore[attr-defined]
        try:
            Merge(text, features, allow_unknown_extension=True)
        except ParseError as error:
            self._tokens.fail(f"features that this release does not know: {error}")
