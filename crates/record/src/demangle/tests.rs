use std::cell::Cell;

use super::*;

/// Names as compilers wrote them, and what is to be read. All but those with lambdas, hashes or
/// `std::string` and its relatives are as `c++filt -p` has them.
const PAIRS: &[(&str, &str)] = &[
    (
        "_ZN7rocksdb9lru_cache13LRUCacheShard6LookupERKNS_5SliceEj",
        "rocksdb::lru_cache::LRUCacheShard::Lookup",
    ),
    ("_ZN7rocksdb4port5Mutex4LockEv", "rocksdb::port::Mutex::Lock"),
    ("_ZN7rocksdb4port5MutexC2Eb", "rocksdb::port::Mutex::Mutex"),
    ("_ZN12kyotocabinet6RWLock11lock_readerEv", "kyotocabinet::RWLock::lock_reader"),
    ("_ZN12kyotocabinet6RWLockC1Ev", "kyotocabinet::RWLock::RWLock"),
    ("_Z1fv", "f"),
    ("_Z3fooILi2EEvRAT__i", "foo<2>"),
    ("_ZnwmSt11align_val_tRKSt9nothrow_t", "operator new"),
    ("_ZN10occurrencedlEPvm", "occurrence::operator delete"),
    ("_ZN3fooixEi", "foo::operator[]"),
    ("_ZN3fooclEv", "foo::operator()"),
    ("_ZNK3fooeqERKS_", "foo::operator=="),
    ("_ZN3foocvbEv", "foo::operator bool"),
    ("_ZN3foocvPKcEv", "foo::operator char const*"),
    ("_ZN3foocvSt6vectorIiSaIiEEEv", "foo::operator std::vector<int, std::allocator<int> >"),
    ("_Zli2_kPKc", "operator\"\" _k"),
    ("_ZNSt10lock_guardISt5mutexEC2ERS0_", "std::lock_guard<std::mutex>::lock_guard"),
    ("_ZNSt10lock_guardISt5mutexED1Ev", "std::lock_guard<std::mutex>::~lock_guard"),
    ("_ZNSt11unique_lockISt5mutexE4lockEv", "std::unique_lock<std::mutex>::lock"),
    ("_ZNSt12shared_mutex11lock_sharedEv", "std::shared_mutex::lock_shared"),
    (
        "_ZN20wide_int_ref_storageILb0ELb1EEC2ISt4pairIP7rtx_def12machine_modeEEERKT_",
        "wide_int_ref_storage<false, true>::wide_int_ref_storage<std::pair<rtx_def*, machine_mode> >",
    ),
    (
        "_ZNSt6vectorIjSaIjEEaSERKS1_",
        "std::vector<unsigned int, std::allocator<unsigned int> >::operator=",
    ),
    (
        "_ZNSt3mapIilSt4lessIiESaISt4pairIKilEEED2Ev",
        "std::map<int, long, std::less<int>, std::allocator<std::pair<int const, long> > >::~map",
    ),
    ("_ZNKSs4rendEv", "std::string::rend"),
    (
        "_ZNSsC1EPKcRKSaIcE",
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string",
    ),
    (
        "_ZNSsD2Ev",
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::~basic_string",
    ),
    ("_ZNSaIcEC1Ev", "std::allocator<char>::allocator"),
    ("_ZNSt8ios_base4InitC1Ev", "std::ios_base::Init::Init"),
    ("_ZNSolsEi", "std::ostream::operator<<"),
    ("_ZNSi3getEv", "std::istream::get"),
    (
        "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
        "std::operator<< <std::char_traits<char> >",
    ),
    (
        "_ZStltIcSt11char_traitsIcESaIcEEbRKNSt7__cxx1112basic_stringIT_T0_T1_EES8_",
        "std::operator< <char, std::char_traits<char>, std::allocator<char> >",
    ),
    (
        "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEpLESt16initializer_listIcE",
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::operator+=",
    ),
    (
        "_ZN5boost16cpp_regex_traitsIcE21get_catalog_name_instB5cxx11Ev",
        "boost::cpp_regex_traits<char>::get_catalog_name_inst[abi:cxx11]",
    ),
    ("_ZN12_GLOBAL__N_15mutexE", "(anonymous namespace)::mutex"),
    ("_ZN12_GLOBAL__N_13foo3barEv", "(anonymous namespace)::foo::bar"),
    (
        "_ZN7rocksdb12_GLOBAL__N_110CachedFileD0Ev",
        "rocksdb::(anonymous namespace)::CachedFile::~CachedFile",
    ),
    ("_ZL6g_lock", "g_lock"),
    ("_ZN7rocksdbL7logger_E", "rocksdb::logger_"),
    ("_ZZ4mainE4lock", "main::lock"),
    ("_ZZ4mainENKUlvE_clEv", "main::{lambda#1}::operator()"),
    ("_ZZ4mainENKUlT_E0_clIiEEDaS_", "main::{lambda#2}::operator()<int>"),
    (
        "_ZZN7rocksdb15ConcurrentArena8AllocateEmENKUlvE_clEv",
        "rocksdb::ConcurrentArena::Allocate::{lambda#1}::operator()",
    ),
    (
        "_ZN7rocksdb15ConcurrentArena12AllocateImplIZNS0_8AllocateEmEUlvE_EEPcmbRKT_",
        "rocksdb::ConcurrentArena::AllocateImpl<rocksdb::ConcurrentArena::Allocate::{lambda#1}>",
    ),
    (
        "_ZZN12kyotocabinet7BasicDB7replaceEPKcmS2_mEN11VisitorImplD0Ev",
        "kyotocabinet::BasicDB::replace::VisitorImpl::~VisitorImpl",
    ),
    (
        "_ZZN4node23WorkerThreadsTaskRunner20DelayedTaskScheduler3RunEvE20error_and_abort_args_0",
        "node::WorkerThreadsTaskRunner::DelayedTaskScheduler::Run::error_and_abort_args",
    ),
    ("_ZZZ4mainENKUlvE_clEvENKUlvE_clEv", "main::{lambda#1}::operator()::{lambda#1}::operator()"),
    ("_ZN16FLAGS_noflagfileMUlvE_4_FUNEv", "FLAGS_noflagfile::{lambda#1}::_FUN"),
    (
        "_ZN6icu_726number4impl10MicroPropsUt_C1Ev",
        "icu_72::number::impl::MicroProps::{unnamed type#1}::{unnamed type#1}",
    ),
    (
        "_ZGVZNK24AAMemoryBehaviorCallSite15trackStatisticsEvE17NumIRCS_writeonly",
        "guard variable for AAMemoryBehaviorCallSite::trackStatistics::NumIRCS_writeonly",
    ),
    ("_ZTVN7rocksdb4port5MutexE", "vtable for rocksdb::port::Mutex"),
    ("_ZTINSt6thread6_StateE", "typeinfo for std::thread::_State"),
    (
        "_ZTSN4llvm6detail23provider_format_adapterIRA16_KcEE",
        "typeinfo name for llvm::detail::provider_format_adapter<char const (&) [16]>",
    ),
    (
        "_ZThn8_N2v88internal23PointersUpdatingVisitorD0Ev",
        "non-virtual thunk to v8::internal::PointersUpdatingVisitor::~PointersUpdatingVisitor",
    ),
    (
        "_ZTv0_n24_NSt13basic_ostreamIwSt11char_traitsIwEED1Ev",
        "virtual thunk to std::basic_ostream<wchar_t, std::char_traits<wchar_t> >::~basic_ostream",
    ),
    ("_ZTcv0_n24_v0_n32_N1A1fEv", "covariant return thunk to A::f"),
    ("_ZTHN7rocksdb12perf_contextE", "TLS init function for rocksdb::perf_context"),
    ("_ZTWN7rocksdb12perf_contextE", "TLS wrapper function for rocksdb::perf_context"),
    ("_ZGTtNSt11range_errorD2Ev", "transaction clone for std::range_error::~range_error"),
    ("_Z1fIPFviEEvT_", "f<void (*)(int)>"),
    ("_Z1fIPFPFvvEiEEvT_", "f<void (*(*)(int))()>"),
    ("_Z1fIFvvEEvPT_", "f<void ()>"),
    ("_Z1fIM1AFivEEvT_", "f<int (A::*)()>"),
    ("_Z1fIM1AKFivEEvT_", "f<int (A::*)() const>"),
    ("_Z1fIM1AKFvRKS0_EEvT_", "f<void (A::*)(A const&) const>"),
    ("_Z1fIM1AiEvT_", "f<int A::*>"),
    ("_Z1fIPA3_A4_iEvT_", "f<int (*) [3][4]>"),
    ("_Z1fIPVKcEvT_", "f<char const volatile*>"),
    ("_Z1fIRKPKcOiEvT_T0_", "f<char const* const&, int&&>"),
    ("_Z1fIDnDiDsEvv", "f<decltype(nullptr), char32_t, char16_t>"),
    ("_Z1fIJEEvDpT_", "f<>"),
    ("_Z1fIJiEJdEEvv", "f<int, double>"),
    (
        "_ZN4node7FPrintFIJRjS1_EEEvP8_IO_FILEPKcDpOT_",
        "node::FPrintF<unsigned int&, unsigned int&>",
    ),
    (
        "_Z1fILb1ELb0ELi5ELin5ELj7ELm8ELl9ELx1ELy2ELc65ELh3EEvv",
        "f<true, false, 5, -5, 7u, 8ul, 9l, 1ll, 2ull, (char)65, (unsigned char)3>",
    ),
    (
        "_ZN7rocksdb27CacheReservationManagerImplILNS_14CacheEntryRoleE13EE17GetDummyEntrySizeEv",
        "rocksdb::CacheReservationManagerImpl<(rocksdb::CacheEntryRole)13>::GetDummyEntrySize",
    ),
    (
        "_ZSt4moveIRSt10unique_ptrI1ASt14default_deleteIS1_EEEONSt16remove_referenceIT_E4typeEOS7_",
        "std::move<std::unique_ptr<A, std::default_delete<A> >&>",
    ),
    ("_ZNSt8functionIFvRKSsEEC1Ev", "std::function<void (std::string const&)>::function"),
    (
        "_ZNSt17_Function_handlerIFvvEZ4mainEUlvE0_E9_M_invokeERKSt9_Any_data",
        "std::_Function_handler<void (), main::{lambda#2}>::_M_invoke",
    ),
    (
        "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJZ4mainEUlvE_EEEEE6_M_runEv",
        "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda#1}> > >::_M_run",
    ),
    (
        "_ZNKR6icu_786number23NumberFormatterSettingsINS0_26UnlocalizedNumberFormatterEE9thresholdEi",
        "icu_78::number::NumberFormatterSettings<icu_78::number::UnlocalizedNumberFormatter>::threshold",
    ),
    ("_ZN1AUt0_1gEv", "A::{unnamed type#2}::g"),
    ("_ZNSt15__exception_ptreqERKNS_13exception_ptrES2_", "std::__exception_ptr::operator=="),
    ("_ZN1A1BC1IiEERKT_", "A::B::B<int>"),
    ("_ZN1AC1IiEET_", "A::A<int>"),
    ("_ZNK1AssERKS_", "A::operator<=>"),
    ("_ZN1AawEv", "A::operator co_await"),
    ("_Z1fIPDoFvvEEvT_", "f<void (*)() noexcept>"),
    ("_Z1fICdEvv", "f<double _Complex>"),
    ("_Z1fIDF16_DF16bDF32xEvv", "f<_Float16, std::bfloat16_t, _Float32x>"),
    ("_Z1fIDv4_fEvv", "f<float __vector(4)>"),
    ("_Z1fIXadL_Z1gvEEEvv", "f<&g>"),
    ("_Z1fIXadL_ZNK1A1gEvEEEvv", "f<&A::g>"),
    ("_ZDC1a1bE", "[a, b]"),
    ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
    ("_ZN3foo3bar28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "foo::bar::{{closure}}"),
    (
        "_ZN53_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$foo..Bar$GT$3get17h0123456789abcdefE",
        "<alloc::vec::Vec<T> as foo::Bar>::get",
    ),
    (
        "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
        "core::ptr::drop_in_place<alloc::string::String>",
    ),
    ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
    ("_RNvMs_NtCs1234_7mycrate3fooNtB4_5Thing3new", "<mycrate::foo::Thing>::new"),
    (
        "_RNvXs0_NtCs1234_7mycrate3fooNtB5_5ThingNtNtCs5678_4core3fmt7Display3fmt",
        "<mycrate::foo::Thing as core::fmt::Display>::fmt",
    ),
    ("_RNCNvCs1234_7mycrate4main0", "mycrate::main::{closure#0}"),
    ("_RNCNvCs1234_7mycrate4mains_0", "mycrate::main::{closure#1}"),
    ("_RINvNtCs1234_4core3mem4swapReE", "core::mem::swap::<&str>"),
    (
        "_RINvCs1234_4core1fTjENtNtB2_6string6StringAhj8_EB2_",
        "core::f::<(usize,), core::string::String, [u8; 8]>",
    ),
];

std::thread_local! {
    static LOWEST: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Called at every level of the grammars: how far down the stack reaches.
pub(super) fn note_stack() {
    let here = 0u8;
    let address = std::ptr::from_ref(std::hint::black_box(&here)).addr();
    LOWEST.with(|lowest| lowest.set(lowest.get().min(address)));
}

fn demangled(name: &str) -> String {
    demangle(name.as_bytes(), &mut [0; ROOM]).to_owned()
}

#[test]
fn pairs() {
    let wrong: Vec<_> = PAIRS.iter().filter(|(name, text)| demangled(name) != *text).collect();
    for (name, text) in &wrong {
        eprintln!("{name}\n  is   {}\n  not  {text}", demangled(name));
    }
    assert!(wrong.is_empty(), "{} of {} wrong", wrong.len(), PAIRS.len());
}

#[test]
fn what_is_left_as_it_is() {
    for name in [
        "",
        "main",
        "_start",
        "__pthread_mutex_lock",
        "operator",
        "_Z",
        "_ZN",
        "_ZNE",
        "_R",
        "_ZN3foo",
        "_ZN3fooE_$;",
        "_ZN9999999999999999999999foo",
        "_ZN4fooE",
        // A substitution that nothing has defined.
        "_ZN3fooIS5_E3barEv",
        "_ZS_3foo",
        // What a parameter of a template stands for is not looked up.
        "_ZN3foocvT_IiEEv",
        "_Z1fIXplLi1ELi2EEEvv",
        "table.1234",
        "_RNvC1a",
        "_RNvB9_1a",
    ] {
        assert_eq!(demangled(name), name);
    }
}

#[test]
fn clones_and_versions_are_what_they_were_made_from() {
    for (name, text) in [
        ("_ZN3foo3barEv.constprop.0", "foo::bar"),
        ("_ZN3foo3barEv.part.0.cold", "foo::bar"),
        ("_ZN3foo3barEv.isra.0.constprop.1.cold.2", "foo::bar"),
        ("_ZN3foo3bar17h0123456789abcdefE.llvm.123456", "foo::bar"),
        ("lock_slow.part.0", "lock_slow"),
        ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
        ("counter.3", "counter.3"),
        (".cold", ".cold"),
    ] {
        assert_eq!(demangled(name), text);
    }
}

#[test]
fn names_that_do_not_fit_are_cut() {
    let name = b"_ZN3foo3barEv";
    assert_eq!(demangle(name, &mut [0; 8]), "foo::bar");
    assert_eq!(demangle(name, &mut [0; 7]), "_ZN3foo");
    assert_eq!(demangle(name, &mut []), "");
    assert_eq!(demangle("größe".as_bytes(), &mut [0; 3]), "gr");
    assert_eq!(demangle(b"a\xffb", &mut [0; 9]), "a?b");
    assert_eq!(demangle(b"_ZN1\xff1aE", &mut [0; 9]), "?::a");
}

/// Numbers that look random, from a multiplicative generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn damaged_names_do_no_harm() {
    let mut chance = Chance(1);
    let mut room = [0; ROOM];
    for (name, _) in PAIRS {
        for length in 0..name.len() {
            demangle(&name.as_bytes()[..length], &mut room);
        }
        for _ in 0..if cfg!(miri) { 3 } else { 1000 } {
            let mut bad = name.as_bytes().to_vec();
            for _ in 0..1 + chance.below(3) {
                let at = 2 + chance.below(bad.len() - 2);
                let other = PAIRS[chance.below(PAIRS.len())].0.as_bytes();
                match chance.below(3) {
                    0 => bad[at] = other[chance.below(other.len())],
                    1 => bad[at] = chance.below(256) as u8,
                    _ => {
                        let from = 2 + chance.below(other.len() - 2);
                        bad.splice(at..at, other[from..].iter().copied());
                    }
                }
            }
            let little = chance.below(60);
            demangle(&bad, &mut room);
            demangle(&bad, &mut room[..little]);
        }
    }
}

#[test]
fn depth_and_time_are_bounded() {
    let mut nested = String::from("_Z1f");
    nested.extend(std::iter::repeat_n("I1A", 200));
    nested.push_str(&"E".repeat(200));
    assert_eq!(demangled(&nested), nested);
    let pointers = format!("_Z1fI{}iEvv", "P".repeat(300));
    assert_eq!(demangled(&pointers), pointers);
    // Each substitution is twice as long as the one before it, but the text is not.
    let mut doubling = String::from("_Z1fI1AIJEE");
    for digit in 0..30 {
        let last = char::from_digit(digit, 36).unwrap().to_ascii_uppercase();
        doubling.push_str(&format!("S_IJS{last}_S{last}_EE"));
    }
    doubling.push_str("Evv");
    assert_eq!(demangled(&doubling), doubling);
}

#[test]
fn the_stack_is_bounded() {
    let mut deepest = 0;
    let nested: Vec<String> =
        (1..60).map(|n| format!("_Z1f{}{}", "I1A".repeat(n), "E".repeat(n))).collect();
    let pointers: Vec<String> = (1..60).map(|n| format!("_Z1fI{}iEvv", "PF".repeat(n))).collect();
    let locals: Vec<String> = (1..60).map(|n| format!("_{}1fv", "ZN1a".repeat(n))).collect();
    let rust: Vec<String> = (1..60).map(|n| format!("_RI{}1a", "RTINv".repeat(n))).collect();
    let names = PAIRS.iter().map(|(name, _)| (*name).to_owned());
    for name in names.chain(nested).chain(pointers).chain(locals).chain(rust) {
        let mut room = [0; ROOM];
        LOWEST.with(|lowest| lowest.set(usize::MAX));
        let top = std::ptr::from_ref(&room).addr();
        demangle(name.as_bytes(), &mut room);
        let lowest = LOWEST.with(Cell::get);
        if lowest < top {
            deepest = deepest.max(top - lowest);
        }
    }
    let limit = if cfg!(debug_assertions) { 32 << 10 } else { 5 << 10 };
    assert!(deepest > 500 && deepest < limit, "{deepest} bytes of stack");
    println!("{deepest} bytes of stack");
}
