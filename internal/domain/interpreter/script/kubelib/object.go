package kubelib

const (
	// podSteps are the steps of a conversion of the smallest pod template, and bytesPerStep is the
	// number of bytes of a template for each further step.
	podSteps     = 256
	bytesPerStep = 8
	// valueBytes is the size of a field or of an element of a list, without its content.
	valueBytes = 64
)

// sizeOf returns about how many bytes a value takes.
func sizeOf(value any) int {
	size := valueBytes
	switch value := value.(type) {
	case string:
		size += len(value)
	case []any:
		for _, entry := range value {
			size += sizeOf(entry)
		}
	case map[string]any:
		for key, entry := range value {
			size += len(key) + sizeOf(entry)
		}
	}
	return size
}

// checkQuantities returns an error if a quantity in a pod template is out of bounds. Other fields
// may have the same text, so only the fields for quantities are checked.
func checkQuantities(value any) error {
	switch value := value.(type) {
	case []any:
		for _, entry := range value {
			if err := checkQuantities(entry); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, entry := range value {
			if err := checkField(key, entry); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkField(key string, value any) error {
	switch key {
	case "sizeLimit", "divisor":
		if text, ok := value.(string); ok {
			return checkBounds(text)
		}
	case "requests", "limits", "overhead":
		list, _ := value.(map[string]any)
		for _, entry := range list {
			if text, ok := entry.(string); ok {
				if err := checkBounds(text); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return checkQuantities(value)
}

// withoutEmptyMaps returns a copy of a value without empty maps. It returns nil for an empty map.
func withoutEmptyMaps(value any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, 0, len(value))
		for _, entry := range value {
			list = append(list, withoutEmptyMaps(entry))
		}
		return list
	case map[string]any:
		if len(value) == 0 {
			return nil
		}
		object := make(map[string]any, len(value))
		for key, entry := range value {
			if kept := withoutEmptyMaps(entry); kept != nil {
				object[key] = kept
			}
		}
		return object
	default:
		return value
	}
}
