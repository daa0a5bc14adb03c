package validation

// The codes of errors that are not specific to a field.
const (
	Required         = "REQUIRED"
	NotAllowed       = "NOT_ALLOWED" // the field does not go with others
	NullNotAllowed   = "NULL_NOT_ALLOWED"
	WrongType        = "WRONG_TYPE"
	UnknownField     = "UNKNOWN_FIELD"
	UnknownParameter = "UNKNOWN_PARAMETER"
	DuplicateField   = "DUPLICATE_FIELD"
	MalformedJSON    = "MALFORMED_JSON"
	TrailingData     = "TRAILING_DATA"
	InvalidUTF8      = "INVALID_UTF8"
	LoneSurrogate    = "LONE_SURROGATE"
	ControlCharacter = "CONTROL_CHARACTER"
	InvalidDecimal   = "INVALID_DECIMAL"
	TooManyDigits    = "TOO_MANY_DIGITS"
	InvalidValue     = "INVALID_VALUE"
	OutOfRange       = "OUT_OF_RANGE"
	TooLong          = "TOO_LONG"
	TooDeep          = "TOO_DEEP"
)

// The kinds of errors: pydantic's types, with the Args of their wording.
const (
	Missing          = "missing"
	ValueError       = "value_error" // worded by Message
	Enum             = "enum"        // the allowed values as a []string
	ExtraForbidden   = "extra_forbidden"
	StringType       = "string_type"
	StringTooShort   = "string_too_short" // the least length and its unit
	StringTooLong    = "string_too_long"  // the greatest length and its unit
	StringUnicode    = "string_unicode"
	StringPattern    = "string_pattern_mismatch" // the pattern
	IntType          = "int_type"
	IntFractional    = "int_from_float"
	IntParsing       = "int_parsing"
	LessThanEqual    = "less_than_equal"    // the greatest value
	GreaterThanEqual = "greater_than_equal" // the least value
	BoolType         = "bool_type"
	BoolParsing      = "bool_parsing"
	ListType         = "list_type"
	ListTooShort     = "too_short" // the least number of items, and the number given
	ListTooLong      = "too_long"  // the greatest number of items, and the number given
	ModelType        = "model_attributes_type"
	UUIDType         = "uuid_type"
	UUIDParsing      = "uuid_parsing" // the reason
	JSONInvalid      = "json_invalid"
	MultipartInvalid = "multipart_invalid" // the reason

	// Unanswered is a question without an answer. It is worded by Message. Its type is that of Missing.
	Unanswered = "unanswered"
)
