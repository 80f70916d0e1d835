package bounds

// Sizes in bytes of what the decoder makes, on 64 bit machines.
const (
	valueBytes  = 16
	stringBytes = 16
	sliceBytes  = 24
	mapBytes    = 48
	groupBytes  = 8
	groupSlots  = 8
)

// Weigh estimates the memory in bytes of a decoded JSON value. It follows the value to
// its end and allocates nothing.
func Weigh(value any) int64 {
	switch v := value.(type) {
	case map[string]any:
		weight := int64(mapBytes)
		if len(v) > 0 {
			groups := int64(len(v)+groupSlots-1) / groupSlots
			weight += groups * (groupBytes + groupSlots*(stringBytes+valueBytes))
		}
		for key, inner := range v {
			weight += int64(len(key)) + Weigh(inner)
		}
		return weight
	case []any:
		weight := int64(sliceBytes + valueBytes*len(v))
		for _, inner := range v {
			weight += Weigh(inner)
		}
		return weight
	case string:
		return int64(stringBytes + len(v))
	default:
		return valueBytes / 2
	}
}
