// A scanner's library: one scan at a time. Called from Java.
#include <jni.h>
#include <pthread.h>

static pthread_mutex_t scanner_lock = PTHREAD_MUTEX_INITIALIZER;

JNIEXPORT void JNICALL Java_com_shop_Scanner_take(JNIEnv *env, jclass class) {
    (void)env;
    (void)class;
    pthread_mutex_lock(&scanner_lock);
}

JNIEXPORT void JNICALL Java_com_shop_Scanner_letGo(JNIEnv *env, jclass class) {
    (void)env;
    (void)class;
    pthread_mutex_unlock(&scanner_lock);
}
