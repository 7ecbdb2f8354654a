// Registration that reports to Python instead of ending the process. opkit includes it before every source it builds.
//
// torch's STABLE_TORCH_LIBRARY registers while the library is loaded, where an exception (a misspelled schema, an
// operator that exists) ends the interpreter; and nothing compares a schema with the C++ function. Here the same macros
// keep a list of all registrations, with the types of the functions, which `load` and `load_native_library` judge.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

// Hidden: each library has a list of its own.
namespace __attribute__((visibility("hidden"))) opkit_registration {

  struct Registered {
    std::vector<TorchLibraryHandle> handles;
    std::string lines;  // kind, namespace, schema or name, types or "failed": separated by tabs

    void undo() {
      for (; !handles.empty(); handles.pop_back()) aoti_torch_delete_library_object(handles.back());
    }
    ~Registered() { undo(); }
  };
  inline Registered& registered() {
    static Registered list;
    return list;
  }

  // The name of a C++ type in a schema, as Python prints it; "?" for a type that is not judged.
  template <typename T>
  struct Type {
    static std::string name() {
      if constexpr (std::is_same_v<T, bool>) return "bool";
      if constexpr (std::is_integral_v<T>) return sizeof(T) == 8 ? "int" : std::to_string(8 * sizeof(T)) + "-bit int";
      if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 8 ? "float" : "32-bit float";
      if constexpr (std::is_same_v<T, torch::stable::Tensor>) return "Tensor";
      if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) return "str";
      return "?";
    }
  };
  template <typename T>
  struct Type<std::optional<T>> {
    static std::string name() { return "Optional[" + Type<T>::name() + "]"; }
  };
  template <typename T>
  struct Type<std::vector<T>> {
    static std::string name() { return "List[" + Type<T>::name() + "]"; }
  };
  template <typename T>
  struct Type<torch::headeronly::HeaderOnlyArrayRef<T>> : Type<std::vector<T>> {};

  template <typename... T>
  std::string names() {
    std::string text;
    ((text += (text.empty() ? "" : ", ") + Type<std::remove_cvref_t<T>>::name()), ...);
    return text;
  }

  template <typename Result>
  struct Results {
    static std::string text() { return names<Result>(); }
  };
  template <>
  struct Results<void> {
    static std::string text() { return ""; }
  };
  template <typename... T>
  struct Results<std::tuple<T...>> {
    static std::string text() { return names<T...>(); }
  };

  template <typename Result, typename... Arguments>
  std::string signature(Result (*)(Arguments...)) {
    return names<Arguments...>() + " -> " + Results<Result>::text();
  }

  // What TORCH_BOX returns: the boxed function, and the types of the function in the box.
  struct Boxed {
    void (*function)(StableIValue*, uint64_t, uint64_t);
    std::string types;
    operator decltype(function)() const { return function; }
  };

  class Library {
    const char* space_;
    TorchLibraryHandle handle_ = nullptr;

    Library& note(const char* kind, const char* text, const std::string& types, bool ok) {
      registered().lines += std::string(kind) + "\t" + space_ + "\t" + text + "\t" + (ok ? types : "failed") + "\n";
      return *this;
    }

   public:
    Library(const char* kind, const char* space, const char* key, const char* file, uint32_t line) : space_(space) {
      const std::string_view name = kind;
      const auto status = name == "IMPL"  ? aoti_torch_library_init_impl(space, key, file, line, &handle_)
                          : name == "DEF" ? aoti_torch_library_init_def(space, file, line, &handle_)
                                          : aoti_torch_library_init_fragment(space, file, line, &handle_);
      if (status == TORCH_SUCCESS) {
        registered().handles.push_back(handle_);
      } else {
        handle_ = nullptr;
        note(kind, key ? key : "", "", false);
      }
    }
    Library& def(const char* schema) {
      if (!handle_) return *this;
      return note("def", schema, "", aoti_torch_library_def(handle_, schema) == TORCH_SUCCESS);
    }
    Library& impl(const char* name, const Boxed& box) {
      if (!handle_) return *this;
      return note("impl", name, box.types, torch_library_impl(handle_, name, box, TORCH_ABI_VERSION) == TORCH_SUCCESS);
    }
    Library& impl(const char* name, void (*function)(StableIValue*, uint64_t, uint64_t)) {
      return impl(name, Boxed{function, "?"});
    }
  };

  struct Registration {
    Registration(const char* kind, const char* space, const char* key, const char* file, uint32_t line,
                 void (*body)(Library&)) {
      Library library(kind, space, key, file, line);
      body(library);
    }
  };

}  // namespace opkit_registration

// Weak, because every source has it.
extern "C" {
__attribute__((weak, visibility("default"))) const char* opkit_registrations() {
  return opkit_registration::registered().lines.c_str();
}
__attribute__((weak, visibility("default"))) void opkit_unregister() { opkit_registration::registered().undo(); }
}

#undef TORCH_BOX
#define TORCH_BOX(func)                                                                                             \
  opkit_registration::Boxed {                                                                                       \
    torch::stable::detail::boxer<std::remove_pointer_t<std::remove_reference_t<decltype(func)>>, (func)>::boxed_fn, \
        opkit_registration::signature(func)                                                                         \
  }

#undef STABLE_TORCH_LIBRARY
#undef STABLE_TORCH_LIBRARY_FRAGMENT
#undef STABLE_TORCH_LIBRARY_IMPL
#define STABLE_TORCH_LIBRARY(ns, m) OPKIT_REGISTRATION("DEF", ns, nullptr, m, C10_UID)
#define STABLE_TORCH_LIBRARY_FRAGMENT(ns, m) OPKIT_REGISTRATION("FRAGMENT", ns, nullptr, m, C10_UID)
#define STABLE_TORCH_LIBRARY_IMPL(ns, k, m) OPKIT_REGISTRATION("IMPL", ns, C10_STRINGIZE(k), m, C10_UID)
#define OPKIT_REGISTRATION(kind, ns, key, m, uid) OPKIT_REGISTRATION_UID(kind, ns, key, m, uid)
#define OPKIT_REGISTRATION_UID(kind, ns, key, m, uid)                                            \
  static void C10_CONCATENATE(opkit_register_, uid)(opkit_registration::Library&);               \
  static const opkit_registration::Registration C10_CONCATENATE(opkit_registration_, uid)(       \
      kind, C10_STRINGIZE(ns), key, __FILE__, __LINE__, &C10_CONCATENATE(opkit_register_, uid)); \
  void C10_CONCATENATE(opkit_register_, uid)([[maybe_unused]] opkit_registration::Library & m)
