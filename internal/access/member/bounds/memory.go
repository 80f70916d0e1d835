package bounds

// Sizes in bytes of the values that the decoder creates, on 64-bit machines.
const (
	valueBytes  = 16
	stringBytes = 16
	sliceBytes  = 24
	mapBytes    = 48
	groupBytes  = 8
	groupSlots  = 8
)

// EstimateMemory estimates the memory in bytes of a decoded JSON value. It visits the whole
// value and allocates nothing.
func EstimateMemory(value any) int64 {
	switch v := value.(type) {
	case map[string]any:
		weight := int64(mapBytes)
		if len(v) > 0 {
			groups := int64(len(v)+groupSlots-1) / groupSlots
			weight += groups * (groupBytes + groupSlots*(stringBytes+valueBytes))
		}
		for key, inner := range v {
			weight += int64(len(key)) + EstimateMemory(inner)
		}
		return weight
	case []any:
		weight := int64(sliceBytes + valueBytes*len(v))
		for _, inner := range v {
			weight += EstimateMemory(inner)
		}
		return weight
	case string:
		return int64(stringBytes + len(v))
	default:
		return valueBytes / 2
	}
}
